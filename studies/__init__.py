"""Evidence: a folder for each paper and study with its README, tables, stored scores and scripts.

    python -m studies.papers [PAPER --runs RUN ...]

takes scores of runs and makes the tables of every paper anew. Run the commands of this folder and
of ``tools`` from the root of the repository.
"""

"""Dataset sources: raw files to samples, one source a file.

Each offers ``Parameters`` and ``load(parameters, files, splits) -> Samples``. Features are left as
they are in the files, categories one-hot: whitening is fitted later, on each replica's training
rows.
"""

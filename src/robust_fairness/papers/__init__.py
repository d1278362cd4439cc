"""The five papers: a folder each, with its claims and the numbers that it printed.

``<paper>/claims.yml`` lists claims, each as an effect that decides it (studies/README.md):

- ``claim``, ``at``: what the paper says, and where.
- ``effect``: the number in words: mean of ``first`` minus mean of ``second``, paired by seed, in
  the unit of its metric.
- ``rows``: values of columns that both sides have; a part adds its own. A trial that is not named
  is the default one, ``any`` is every one; a group that is not named is all rows.
- ``expect``: what the claim says of it: above 0, below 0, within the margin, not below -margin,
  not above margin.
- ``average``: the effect is the mean over these datasets, which are fixed; without it every part
  stands alone.
- ``margin``: the smallest effect that matters, by one rule that looks at no score of ours. A claim
  of a difference with a printed size has half of it (``half``; of each part its own), so that
  "excluded" means less than half of what was printed. One without a printed size, and one of no
  difference, has a round number: 1 point of accuracy or of an area (.01), 2 points of a FairCOCCO
  score or of R squared, 5 points of a gap between groups or of Delta-ER (the project's margin of a
  gap), 5 points of accuracy for "around 10 %", half of a rank correlation of 1, .1 of a logarithm.
  That shifts harm has half of the paper's own example.
- ``published``, ``std``: the paper's own effect, and the standard deviation of the printed means
  that have one; parts have their own. ``note`` says more about it.
- ``known_before``: whether the scores that decide a part lay in studies when it was written:
  yes, no, or partly, where earlier seeds or draws did. ``known`` is what they said.
- ``cost``, ``command``: of what would decide more.
- ``apart``: why a claim cannot fail at our size; it is then listed apart and not counted.
- ``parts``: effects that must all be as claimed; what one lacks is that of its claim.
- ``default_run``: marks the main claim of a paper; the parts that the default run answers, which
  stand for its own where no other of these was run.

``<paper>/published.csv`` has the printed numbers as fractions (``report.views.published``).
``<paper>/views.py`` has the functions of its views, which ``views.yml`` declares; ``measured``, the
scores that its claims are about; and ``ABOUT``: the runs that may have any of them, without which
the page of a run does not compute the section.
"""

from robust_fairness.report.claims.declared import PAPERS
from robust_fairness.report.views import declared_in, own_section, section_of

# Of the page, in its order.
SECTIONS = {
    section.name: section
    for section in (
        *map(own_section, ("methods", "matrix", "natural_shift")),
        *(
            section_of(f"{__name__}.{paper}.views", paper, **declared_in(f"{__name__}.{paper}"))
            for paper in PAPERS
        ),
        *map(own_section, ("agreement", "trial_selection")),
    )
}
VIEWS = {view.id: view for section in SECTIONS.values() for view in section.views}

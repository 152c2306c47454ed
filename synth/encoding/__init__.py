"""Rows as numbers, in the order of the flow.

scales     the values a numeric column can take
cell_text  cells of a file to numbers, and what is wrong with them
records    rows checked against the schema, and back
rows       what a release needs of rows, wherever they are
cells      the public grid of the histogram release
thresholds the raw numbers at which cells begin, for engines that compare
denoising  distributions from noisy counts
mixtures   Gaussian mixtures fitted on them
features   records to the matrix a network sees, and back
"""

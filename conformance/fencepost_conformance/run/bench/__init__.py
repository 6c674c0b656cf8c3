"""The cost table: figures that one command measures again, as ratios within one run.

The machines that run this are shared and noisy, so no figure counts alone. Each is measured in turn with the one that
it is compared to, several times, and the ratio is the median of the ratios of neighbours.
"""

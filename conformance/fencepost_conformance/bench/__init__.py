"""The cost table: what one command measures again, as ratios in one run.

The machines that run this are shared and noisy, so no figure stands alone: each is taken in turn with what it is
compared to, several times over, and the ratio is the median of the ratios of neighbours.
"""

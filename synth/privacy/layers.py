"""Recurrent layers that DP-SGD can train: Opacus' own, with the arguments and outputs of torch's GRU and LSTM.

A cell made of Linear layers trains as well, and faster (see `bookkeeping`).
"""

from opacus.layers import DPGRU, DPLSTM

__all__ = ["DPGRU", "DPLSTM"]

"""Learning a learning rate in PyTorch: the module behind the notebooks. Read its files in this order:

problems, rates, versions, settings, unroll, differences, report, referee, train, describe, figures, grid,
axes, trajectory, controls, lab
"""

__version__ = "0.1.0"

import os

# Kernels that nbval starts inherit this. The tensors are tiny, and threads that wait for each other on a busy machine
# made the notebooks up to twenty times slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import os

# Kernels that nbval starts inherit this. The tensors are tiny, and threads that wait for each other on a busy machine
# made the notebooks up to twenty times slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The longest files first, so that two workers end together.
LONGEST = ("test_shipped_notebooks.py", "test_doctor_variants.py", "test_lab_in_jupyterlab.py")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))

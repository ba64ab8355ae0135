"""Prints the link that opens your own copy of this repository on Binder: JupyterLab, at the first notebook.

python binder/link.py           the default branch
python binder/link.py REF       a branch, a tag or a commit

Binder clones what the remote `origin` serves to everyone, so push first.
"""

import argparse
import re
import subprocess
from pathlib import Path
from urllib.parse import quote

FIRST_NOTEBOOK = "notebooks/00-a-learning-rate-can-be-learned.ipynb"
ROOT = Path(__file__).resolve().parents[1]

# The second name of each host serves ssh on the https port.
GITHUB = ("github.com", "ssh.github.com", "www.github.com")
GITLAB = ("gitlab.com", "altssh.gitlab.com", "www.gitlab.com")
URL = re.compile(r"(?P<scheme>https?|ssh|git)://(?P<host>[^/:]+)(?P<port>:\d+)?/+(?P<path>.+)")
SHORT_SSH = re.compile(r"(?:[^/:@]+@)?(?P<host>[^/:@]+):(?!//)/?(?P<path>.+)")


def _refused(remote: str, why: str, accepted: str) -> ValueError:
    return ValueError(
        f"the remote {remote!r} {why}: Binder needs {accepted}; "
        "push your copy to such a place, then run `git remote set-url origin` with its address"
    )


def _source(remote: str) -> str:
    """The part of the link that says where the repository is, in the form that Binder has for its host."""
    short = SHORT_SSH.fullmatch(remote)
    url = URL.fullmatch(f"ssh://{short['host']}/{short['path']}" if short else remote)
    if url is None or "." not in url["host"]:  # a folder, a drive letter, or a short name from someone's ssh settings
        raise _refused(remote, "can be reached from here only", "https://HOST/OWNER/NAME or git@HOST:OWNER/NAME")
    host, path = url["host"].lower(), url["path"].strip("/")
    name = path.removesuffix(".git")
    if host in GITHUB:
        if name.count("/") != 1:
            raise _refused(remote, "names no repository on GitHub", "https://github.com/OWNER/NAME")
        return f"gh/{quote(name)}"
    if host in GITLAB:
        if "/" not in name:
            raise _refused(remote, "names no repository on GitLab", "https://gitlab.com/GROUP/NAME")
        return f"gl/{quote(name, safe='')}"
    # Elsewhere `.git` may belong to the name. Binder has no ssh key, so https must do, and not on the port of ssh.
    address = f"https://{host}/{path}"
    if url["scheme"] in ("http", "https"):
        address = f"{url['scheme']}://{host}{url['port'] or ''}/{path}"
    return f"git/{quote(address, safe='')}"


def binder_link(remote: str, ref: str = "HEAD", path: str = FIRST_NOTEBOOK) -> str:
    """The link that opens `path` of the repository at `remote`, as of `ref`, in JupyterLab on Binder.

    The remote may be on GitHub or GitLab, by https or ssh, or an address of any other git host that the world can read.
    A name or token inside it goes neither into the link nor into the ValueError for a remote that Binder cannot reach.
    """
    remote = re.sub(r"(?<=://)[^/]*@", "", remote.strip())
    return f"https://mybinder.org/v2/{_source(remote)}/{quote(ref)}?labpath={quote(path, safe='')}"


def origin() -> str:
    """The address of the remote `origin`; a ValueError, with git's own reason, where there is none."""
    try:
        git = subprocess.run(
            ["git", "-C", str(ROOT), "remote", "get-url", "origin"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as problem:
        reason = (getattr(problem, "stderr", None) or str(problem)).strip().splitlines()[0]
        raise ValueError(
            f"{ROOT} has no remote named origin ({reason}): push your copy to GitHub or GitLab, "
            f"then run `git remote add origin` with its address"
        ) from problem
    return git.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description="Print the Binder link of your own copy of this repository.")
    parser.add_argument("ref", nargs="?", default="HEAD", help="branch, tag or commit; without it, the default branch")
    ref = parser.parse_args().ref
    try:
        print(binder_link(origin(), ref))
    except ValueError as problem:
        raise SystemExit(f"No link: {problem}.") from None


if __name__ == "__main__":
    main()

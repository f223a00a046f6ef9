"""Lay out what a sandboxed command shall see of the host, out of its reach.

Part of the supervisor, which must start fast: only cheap modules are imported.
"""

from __future__ import annotations

import os
import resource

from assay.sandbox import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from assay.sandbox.run import SupervisorPlan, Tree

_NOSUID_NODEV = 2 | 4
_RECURSIVE_PRIVATE = 0x4000 | 0x40000
_OWN_FILES = 64
_LAST_ID = 0xFFFFFFFE
# Ids for so many commands at a time of each process: there are 2**22 process ids.
_PLACES = 256
_MOST_MAPS = 256
_FORMAT, _DIRECTORY, _FILE = 0o170000, 0o040000, 0o100000
_IMAGE = "image"  # bubblewrap.ROOT, which costs an import
_NOT_SUPPORTED = 95
_SMALL_BYTES, _ALL_READ = 256 * 1024, 0o004


class StepError(Exception):
    """The kernel refused a step of the set-up."""

    def __init__(self, step: str, error: OSError) -> None:
        super().__init__(step)
        self.step = step
        self.errno = error.errno or 0
        self.text = error.strerror or str(error)


class CommandUser:
    """Whom the command runs as, seen from the host.

    An ordinary user stays who he is, in a user namespace of his own and without any capability.
    Root becomes an id that nobody has, made from the fork server's id and the command's place
    there, and so unique among the sandboxes alive. (A later command in that place gets the same id,
    and the user namespaces that were made for it, each of which takes a fork.) Under uid 0 the
    command could write root's files wherever it sees one, and RLIMIT_NPROC would not hold (the
    kernel exempts uid 0): a fork bomb then took 11.6 s to kill. Under an id of its own it stops at
    the limit and dies in milliseconds, so that no pids cgroup is needed.
    """

    def __init__(self) -> None:
        self.admin = kernel.is_admin()
        self.uid, self.gid = os.getuid(), os.getgid()
        self._server = os.getpid()
        self._ranges = [kernel.id_range(kind) for kind in ("uid", "gid")]
        self._are_many = all(count >= kernel.MANY_IDS for _, count in self._ranges)
        self._has_place = False
        self._maps: dict[tuple[int, int, int], int] = {}
        # Every supervisor has them too, and needs descriptors of its own.
        self._most_maps = min(_MOST_MAPS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)

    def prepare(self, place: int, owners: list[tuple[int, int]]) -> None:
        """In the fork server: be what the next command is; have the maps of these owners ready."""
        self._has_place = self._are_many and place < _PLACES
        if not self.admin or not self._has_place:
            return
        self._choose(self._server * _PLACES + place)
        if len(self._maps) > self._most_maps:
            for fd in self._maps.values():
                os.close(fd)
            self._maps.clear()
        for owner, group in owners:
            try:
                self.owner_map(owner, group)
            except OSError:
                return  # the supervisor will meet the same, and says what it is

    def settle(self) -> None:
        """In the fork: where ids are few, or commands too many, choose by our own process id."""
        if self.admin and not self._has_place:
            self._choose(os.getpid(), above_places=self._are_many)

    def _choose(self, number: int, *, above_places: bool = False) -> None:
        ids: list[int] = []
        for first, count in self._ranges:
            start, room = count // 3, count // 2
            if above_places:
                start, room = start + room, count // 6
            ids.append(first + start + number % room)
        self.uid, self.gid = ids

    def leave_host(self, *, network: bool) -> None:
        """Enter a mount namespace of our own and, if asked to, a network of our own."""
        flags = kernel.NEW_MOUNTS | (kernel.NEW_NETWORK if network else 0)
        kernel.unshare(flags | (0 if self.admin else kernel.NEW_USERS))
        if not self.admin:
            kernel.write_text("/proc/self/setgroups", "deny")
            kernel.write_text("/proc/self/uid_map", f"{self.uid} {self.uid} 1")
            kernel.write_text("/proc/self/gid_map", f"{self.gid} {self.gid} 1")
        kernel.mount("none", "/", "none", _RECURSIVE_PRIVATE)

    def become(self) -> None:
        """Give up root for good."""
        if self.admin:
            os.setgroups([])
            os.setresgid(self.gid, self.gid, self.gid)
            os.setresuid(self.uid, self.uid, self.uid)

    def owner_map(self, owner: int, group: int) -> int:
        """A user namespace that shows ``owner`` as the command's uid, and others as they are."""
        key = (self.uid, owner, group)
        if key not in self._maps:
            maps = _one_id_moved(owner, self.uid), _one_id_moved(group, self.gid)
            self._maps[key] = kernel.user_namespace(*maps)
        return self._maps[key]


def _one_id_moved(owner: int, shown: int) -> str:
    """An id map that is the identity, but for one id and the one it would collide with."""
    lines = [f"{owner} {shown} 1"]
    first = 0
    for gap in sorted({owner, shown}):
        if gap > first:
            lines.append(f"{first} {first} {gap - first}")
        first = gap + 1
    return "\n".join([*lines, f"{first} {first} {_LAST_ID - first + 1}"])


class Stage:
    """A tmpfs in which the trees stand side by side for bubblewrap to pick up."""

    def __init__(self, plan: SupervisorPlan, identity: CommandUser) -> None:
        self._plan = plan
        self._identity = identity
        self._place = plan["stage"]

    def build(self) -> None:
        """Lay everything out."""
        step = "namespace"
        try:
            self._identity.leave_host(network=bool(self._plan["door"]))
            trees: list[tuple[Tree, int, bool]] = []
            # All of them before the stage covers /tmp, where workspaces like to live.
            for tree in self._plan["trees"]:
                step = f"tree {tree['source']}"
                trees.append((tree, *self._pick_up(tree)))
            step = "stage"
            size, files = self._plan["sizes"]
            names, made = self._plan["etc"]
            files += _OWN_FILES + 2 * len(names) + len(made) + 8 * sum(map(len, self._plan["seed"]))
            options = f"size={size},nr_inodes={files},mode=755"
            kernel.mount("assay", self._place, "tmpfs", _NOSUID_NODEV, options)
            self._make_directory(f"{self._place}/empty")
            self._make_etc()
            for tree, fd, ours in trees:
                step = f"tree {tree['source']}"
                self._put_down(tree, fd, ours=ours)
        except OSError as error:
            raise StepError(step, error) from error

    def _make_etc(self) -> None:
        names, files = self._plan["etc"]
        place = f"{self._place}/etc"
        os.mkdir(place)  # noqa: PTH102 - pathlib costs 5 ms of import, here and below
        for name in names:
            *above, _ = name.split("/")
            for depth in range(len(above)):
                directory = "/".join([place, *above[: depth + 1]])
                if not os.path.isdir(directory):  # noqa: PTH112
                    os.mkdir(directory)  # noqa: PTH102
            try:
                # Each mount costs more than the small files that most of them are.
                if not _copy_small("/etc/" + name, f"{place}/{name}"):
                    tree = kernel.open_tree("/etc/" + name, recursive=not self._identity.admin)
                    _attach(tree, f"{place}/{name}")
            except FileNotFoundError:
                continue  # it has gone since
        for name, text in files.items():
            fd = os.open(f"{place}/{name}", os.O_CREAT | os.O_WRONLY, 0o644)
            os.write(fd, text.encode())
            os.close(fd)

    def _pick_up(self, tree: Tree) -> tuple[int, bool]:
        """Detach a view of the tree; whether its owner's files are the command's own in it."""
        # A user namespace can clone its locked submounts only together with their parent.
        fd = kernel.open_tree(tree["source"], recursive=not self._identity.admin)
        if not tree["links"]:
            kernel.refuse_links(fd)
        if not self._identity.admin:
            return fd, True
        owner = os.fstat(fd)
        namespace = self._identity.owner_map(owner.st_uid, owner.st_gid)
        try:
            kernel.set_owner_map(fd, namespace)
        except OSError:
            if tree["mode"] == "write":
                raise
            return fd, False
        return fd, True

    def _put_down(self, tree: Tree, fd: int, *, ours: bool) -> None:
        target = f"{self._place}/{tree['name']}"
        shown = f"{target}.lower" if tree["mode"] == "layer" else target
        _attach(fd, shown)
        if tree["mode"] == "layer":
            over = [f"{self._place}/{name}" for name in tree["over"]]
            self._cover(target, over, ours=ours, is_image=tree["name"] == _IMAGE)

    def _cover(self, target: str, over: list[str], *, ours: bool, is_image: bool) -> None:
        """Make the tree changeable without changing it: an overlay, else a copy."""
        mode = os.stat(f"{target}.lower").st_mode & 0o777  # noqa: PTH116
        names = [f"{target}.{part}" for part in ("lower", "upper", "work")]
        for path in (target, *names[1:]):
            self._make_directory(path)
            os.chmod(path, mode)  # noqa: PTH101
        if is_image:
            self._sow(names[1])
        lower = ":".join([*over, names[0]])
        if ours and self._plan["overlay"] and self._overlay(target, [lower, *names[1:]]):
            return
        if is_image:  # far too much for a copy in memory
            raise OSError(_NOT_SUPPORTED, "an image needs an overlay, which the kernel refuses")
        _run("cp", "-a", "--", f"{names[0]}/.", target)
        for layer in reversed(over):
            _lay_over(layer, target)
        if not ours or over:
            who = f"{self._identity.uid}:{self._identity.gid}"
            _run("chown", "-hR", who, "--", target)

    def _sow(self, upper: str) -> None:
        """Put what the layer over an image holds from the start."""
        directories, files, links = self._plan["seed"]
        for path in directories:
            self._make_way(upper, path)
        for path, text in files.items():
            place = self._make_way(upper, os.path.dirname(path)) + os.path.basename(path)  # noqa: PTH119, PTH120
            fd = os.open(place, os.O_CREAT | os.O_WRONLY, 0o644)
            os.write(fd, text.encode())
            os.close(fd)
        for path, aim in links.items():
            place = self._make_way(upper, os.path.dirname(path)) + os.path.basename(path)  # noqa: PTH119, PTH120
            os.symlink(aim, place)  # noqa: PTH211

    def _make_way(self, upper: str, path: str) -> str:
        place = f"{upper}/"
        for step in path.split("/") if path else ():
            place += f"{step}/"
            if not os.path.isdir(place):  # noqa: PTH112
                self._make_directory(place)
        return place

    def _overlay(self, target: str, names: list[str]) -> bool:
        # Without privilege, overlayfs must keep its notes in attributes that users may write.
        options = "" if self._identity.admin else "userxattr,"
        options += "lowerdir={},upperdir={},workdir={}".format(*names)
        try:
            kernel.mount("overlay", target, "overlay", _NOSUID_NODEV, options)
        except OSError:
            return False
        return True

    def _make_directory(self, path: str) -> None:
        os.mkdir(path)  # noqa: PTH102
        if self._identity.admin:
            os.chown(path, self._identity.uid, self._identity.gid)


def _copy_small(path: str, target: str) -> bool:
    """Copy a file of the host that all may read, unless it is large or no file."""
    found = os.stat(path)  # noqa: PTH116
    if found.st_mode & _FORMAT != _FILE or found.st_size > _SMALL_BYTES:
        return False
    if not found.st_mode & _ALL_READ:
        return False
    source = os.open(path, os.O_RDONLY)
    copy = os.open(target, os.O_CREAT | os.O_WRONLY, 0o644)
    os.sendfile(copy, source, 0, _SMALL_BYTES)
    os.close(source)
    os.close(copy)
    return True


def _attach(tree: int, target: str) -> None:
    """Attach a detached mount at a new file or directory."""
    if os.fstat(tree).st_mode & _FORMAT == _DIRECTORY:
        os.mkdir(target)  # noqa: PTH102
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    kernel.move_tree(tree, target)


def _lay_over(layer: str, target: str) -> None:
    """Copy a layer over a tree: whatever stands in the way goes, as under an overlay."""
    for entry in os.scandir(layer):
        place = f"{target}/{entry.name}"
        both = entry.is_dir(follow_symlinks=False) and os.path.isdir(place)  # noqa: PTH112
        if both and not os.path.islink(place):  # noqa: PTH114
            _lay_over(entry.path, place)
            continue
        _run("rm", "-rf", "--", place)
        _run("cp", "-a", "--", entry.path, place)


def _run(program: str, *words: str) -> None:
    pid = os.posix_spawn(f"/bin/{program}", [program, *words], {"LC_ALL": "C"})
    _, status = os.waitpid(pid, 0)
    if status:
        text = f"{program} failed: it cannot be read, or is larger than workspace_bytes"
        raise OSError(28, text)

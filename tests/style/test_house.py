# SPDX-License-Identifier: Apache-2.0
"""The rules of the house that a machine can check: layers, banned calls, sizes, licence lines, names, stray files."""
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODE = (".cc", ".h", ".c", ".py", ".sh")


def tracked():
    listing = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True)
    if listing.returncode != 0 or not listing.stdout:  # an exported tree without git
        return [p for p in ROOT.rglob("*") if p.is_file() and "build" not in p.relative_to(ROOT).parts]
    return [ROOT / name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()]


FILES = tracked()
SOURCES = [p for p in FILES if p.suffix in (".cc", ".h") and p.is_relative_to(ROOT / "src")]


def short(path):
    return str(path.relative_to(ROOT))


# ---- layers ---------------------------------------------------------------------------------------------------------------------

# What any room may include: the C++ standard library, libc, POSIX. Headers of the kernel count as foreign ("linux").
LIBC = re.compile(r"^(sys|net|netinet|arpa|asm)/|^[a-z_0-9]+(\.h)?$")


def read_layers():
    table = {}
    for line in (ROOT / "src/LAYERS").read_text().splitlines():
        if line.strip() and not line.startswith(("#", '"')):
            room, _, may, foreign = (part.strip() for part in line.split("|"))
            table[room] = (set(may.split()) - {"-"}, set(foreign.split()) - {"-"})
    return table


def layer_fault(room, name, quoted, table):
    may, foreign = table[room]
    if quoted:
        other = name.split("/")[0]
        if other in ("seccomp", "profiles", "generated"):  # made by the build
            return None
        allowed = other == room or "*" in may or other in may
        return None if allowed else f"may not include the room {other}"
    if name.startswith("linux/") or LIBC.match(name):
        return None
    allowed = any(name == f or name.startswith((f + "/", f + ".")) for f in foreign)
    return None if allowed else f"foreign header <{name}> is not in its row"


@pytest.mark.parametrize("path", SOURCES, ids=short)
def test_includes_follow_the_layers(path):
    table = read_layers()
    room = path.relative_to(ROOT / "src").parts[0]
    faults = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if not match:
            continue
        quoted, name = match[1] == '"', match[2]
        if path.stem.endswith("_test") and re.match(r"g(test|mock)/", name):
            continue
        fault = layer_fault(room, name, quoted, table)
        if fault:
            faults.append(f"{short(path)}:{number}: {room} {fault}")
    assert not faults, "\n".join(faults)


def test_layer_check_finds_a_fault():
    table = read_layers()
    assert layer_fault("base", "sys/fd.h", True, table)
    assert layer_fault("wire", "boost/asio.hpp", False, table)
    assert not layer_fault("walls", "sys/fd.h", True, table)


# ---- banned calls ---------------------------------------------------------------------------------------------------------------

BANNED = [  # pattern, replacement, rooms where it is allowed
    (r"\bstd::system\b|(?<![\w.:])system\(", "spawn the program through sys", ()),
    (r"\bstrerror\(", "Error::FromErrno or ErrnoName", ()),
    (r"(?<![\w.:])v?fork\(\)", "sys", ("sys", "walls")),
    (r"\bthrow\b(?! away)", "return an Error", ()),
    (r"\bco_spawn\([^;]*detached", "a TaskGroup", ("aio",)),
    (r"\bstd::j?thread\b", "aio", ("aio",)),
    (r"\bstd::(cout|cerr)\b", "the Log interface, or write(2) in static programs", ("cli", "apps")),
    (r"\b(sprintf|strcpy|strcat|gets)\(", "std::string or fmt", ()),
    (r"\b(TODO|FIXME|XXX|HACK)\b", "an issue", ()),
]


def without_comments_and_strings(text):
    text = re.sub(r'R"(\w*)\((?:.|\n)*?\)\1"', '""', text)
    text = re.sub(r'"(\\.|[^"\\\n])*"', '""', text)
    return re.sub(r"//[^\n]*", "", text)


@pytest.mark.parametrize("path", SOURCES, ids=short)
def test_no_banned_calls(path):
    room = path.relative_to(ROOT / "src").parts[0]
    raw = path.read_text()
    code = without_comments_and_strings(raw)
    faults = []
    for pattern, instead, allowed in BANNED:
        text = raw if "TODO" in pattern else code
        for match in re.finditer(pattern, text):
            if room not in allowed:
                faults.append(f"{short(path)}: '{match[0]}' is banned here; use {instead}")
    assert not faults, "\n".join(faults)


# ---- sizes ----------------------------------------------------------------------------------------------------------------------

FILE_LINES_MAX = {".cc": 500, ".h": 250, ".py": 500}
RATCHET = ROOT / "tests/style/size_ratchet.txt"  # "path lines": an offender may shrink, never grow


def read_ratchet():
    lines = RATCHET.read_text().splitlines() if RATCHET.exists() else []
    return {name: int(count) for name, count in (line.split() for line in lines if line and not line.startswith("#"))}


def test_files_stay_small():
    ratchet, faults = read_ratchet(), []
    for path in FILES:
        limit = FILE_LINES_MAX.get(path.suffix)
        if limit is None or path.stem.endswith("_test"):
            continue
        lines = len(path.read_text().splitlines())
        allowed = max(limit, ratchet.get(short(path), 0))
        if lines > allowed:
            faults.append(f"{short(path)}: {lines} lines, at most {allowed}: split it by purpose")
    assert not faults, "\n".join(faults)


def test_no_large_blobs():
    big = [short(p) for p in FILES if p.stat().st_size > 256 * 1024]
    assert not big, f"over 256 KiB: {big}"


# ---- files ----------------------------------------------------------------------------------------------------------------------


def has_code(path):
    return path.suffix in CODE or path.name in ("CMakeLists.txt", "Makefile") or path.read_bytes()[:2] == b"#!"


def test_every_source_has_the_licence_line():
    missing = [short(p) for p in FILES if has_code(p) and p.stat().st_size and "SPDX-License-Identifier: Apache-2.0" not in p.read_text()[:400]]
    assert not missing, f"without SPDX line: {missing}"


def test_executables_are_scripts():
    stray = [short(p) for p in FILES if p.stat().st_mode & 0o111 and not p.is_symlink() and p.read_bytes()[:2] != b"#!"]
    assert not stray, f"executable but no script: {stray}"


def test_names_are_snake_case():
    wrong = [short(p) for p in FILES if p.suffix in (".cc", ".h") and not re.fullmatch(r"[a-z][a-z0-9_]*\.(cc|h)", p.name)]
    assert not wrong, f"not snake_case: {wrong}"


def test_header_guards_name_the_path():
    wrong = []
    for path in SOURCES:
        if path.suffix == ".h":
            guard = "SOMA_" + re.sub(r"[^A-Z0-9]", "_", str(path.relative_to(ROOT / "src")).upper()) + "_"
            if f"#ifndef {guard}\n#define {guard}\n" not in path.read_text():
                wrong.append(f"{short(path)}: expected {guard}")
    assert not wrong, "\n".join(wrong)


def test_every_black_box_test_is_registered():
    listed = (ROOT / "tests/CMakeLists.txt").read_text()
    lost = [short(p) for p in FILES if p.name.startswith("test_") and p.suffix == ".py" and p.is_relative_to(ROOT / "tests")
            and str(p.relative_to(ROOT / "tests")) not in listed]
    assert not lost, f"not in tests/CMakeLists.txt: {lost}"


def test_every_fuzz_target_has_a_corpus():
    lost = [short(p) for p in FILES if p.name.endswith("_fuzz.cc") and not any((ROOT / "fuzz/corpus" / p.stem).glob("*"))]
    assert not lost, f"no corpus: {lost}"


# ---- documents ------------------------------------------------------------------------------------------------------------------


def test_changelog_has_the_form():
    text = (ROOT / "CHANGELOG.md").read_text()
    assert text.startswith("# Changelog\n")
    assert "## [Unreleased]" in text
    headings = re.findall(r"^### (.*)$", text, re.M)
    assert set(headings) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}, headings


def test_specification_links_exist():
    """Each row names the test or bench that shows it, or says that nothing does yet."""
    faults = []
    for line in (ROOT / "SPECIFICATION.md").read_text().splitlines():
        if not line.startswith("|") or line.startswith(("| what", "|---")):
            continue
        shown = line.rstrip("|").split("|")[-1].strip()
        paths = re.findall(r"`([\w./-]+)", shown)
        if shown != "not yet shown" and not paths:
            faults.append(f"no test, no bench and not 'not yet shown': {line}")
        faults += [f"{name} does not exist: {line}" for name in paths if "/" in name and not (ROOT / name).exists()]
    assert not faults, "\n".join(faults)


def test_commit_subjects():
    log = subprocess.run(["git", "-C", str(ROOT), "log", "--no-merges", "-n", "200", "--format=%s"], capture_output=True, text=True)
    if log.returncode != 0:
        pytest.skip("no git history here (an exported tree)")
    wrong = [s for s in log.stdout.splitlines() if len(s) > 72 or not re.match(r"[a-z][\w/,. +-]*: \S", s)]
    assert not wrong, f"want 'area: imperative', at most 72 columns: {wrong}"

"""Encryption of secrets, and where its key comes from."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import SecretStr

from refill.domain.errors import Misconfigured
from refill.store.cipher import KEY_FILE, AesCipher, load_cipher


def test_what_is_sealed_opens_with_the_same_key_and_row() -> None:
    cipher = AesCipher("key")
    sealed = cipher.seal("täxt", "sink 1")
    assert "täxt" not in sealed
    assert AesCipher("key").open(sealed, "sink 1") == "täxt"
    assert cipher.seal("täxt", "sink 1") != sealed


@pytest.mark.parametrize(
    ("key", "row", "spoil"),
    [
        ("other", "sink 1", ""),
        ("key", "sink 2", ""),
        ("key", "sink 1", "x"),
        ("key", "sink 1", "é"),
    ],
)
def test_another_key_row_or_text_is_refused_with_a_sentence(key: str, row: str, spoil: str) -> None:
    sealed = AesCipher("key").seal("text", "sink 1")
    with pytest.raises(Misconfigured, match="REFILL_SECRET_KEY"):
        AesCipher(key).open(spoil + sealed, row)


def test_a_given_key_wins_and_makes_no_file(tmp_path: Path) -> None:
    sealed = load_cipher(SecretStr("key"), tmp_path).seal("text", "x")
    assert load_cipher("key", tmp_path).open(sealed, "x") == "text"
    assert not (tmp_path / KEY_FILE).exists()


def test_without_a_key_a_file_only_the_owner_can_read_is_made_and_used_again(
    tmp_path: Path,
) -> None:
    home = tmp_path / "new" / "home"
    sealed = load_cipher(None, home).seal("text", "x")
    assert (home / KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert load_cipher(None, home).open(sealed, "x") == "text"
    assert [path.name for path in home.iterdir()] == [KEY_FILE]


def test_many_that_start_at_once_end_with_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        ciphers = list(pool.map(lambda _: load_cipher(None, tmp_path), range(8)))
    sealed = ciphers[0].seal("text", "x")
    assert {cipher.open(sealed, "x") for cipher in ciphers} == {"text"}


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    load_cipher(None, tmp_path)
    (tmp_path / KEY_FILE).chmod(0o644)
    with pytest.raises(Misconfigured, match="chmod 600"):
        load_cipher(None, tmp_path)


def test_an_empty_key_file_is_refused(tmp_path: Path) -> None:
    load_cipher(None, tmp_path)
    (tmp_path / KEY_FILE).write_text("\n")
    with pytest.raises(Misconfigured, match="empty"):
        load_cipher(None, tmp_path)


def test_a_home_where_no_key_can_be_made_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Misconfigured, match="REFILL_SECRET_KEY"):
        load_cipher(None, tmp_path / "file")

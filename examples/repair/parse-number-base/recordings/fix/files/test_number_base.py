import parse


def test_each_text_is_read_for_itself():
    parser = parse.compile("{:d}")
    read = [parser.parse(text)[0] for text in ("0x10", "42", "0b11", "0o17", "9")]
    assert read == [16, 42, 3, 15, 9]

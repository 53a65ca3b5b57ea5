"""Generates typed_settings.py of consumers and of services: their settings for completion in editors.

``--check`` writes nothing and exits 1 if a file is not current.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Container
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / ".src"))

from kohort.client.config import ClientSettings  # noqa: E402
from kohort.consumer.config import ConsumerConfig  # noqa: E402
from kohort.consumer.share.config import ShareConsumerConfig  # noqa: E402
from kohort.service._options import ServiceOptions  # noqa: E402
from kohort.settings import Setting, settings_of  # noqa: E402
from kohort.settings.model import SettingsModel  # noqa: E402

HEAD = '''"""Settings of {what} as keyword arguments, for type checkers and editors.

Written by scripts/typed_settings.py from the table of settings, which says more of what a value may be.
"""

from __future__ import annotations

{imports}

'''


def typed(hint: Any) -> str:
    """Return an annotation as source code."""
    if hint is NoneType:
        return "None"
    if hint is Any:
        return "Any"
    if get_origin(hint) is Literal:
        return f"Literal[{', '.join(map(repr, get_args(hint)))}]".replace("'", '"')
    if isinstance(hint, type) and not get_args(hint):
        return hint.__name__
    if get_origin(hint) is list:
        return f"list[{typed(get_args(hint)[0])}]"
    return " | ".join(map(typed, get_args(hint)))


def _keys(setting: Setting, hint: Any) -> list[str]:
    lines = []
    for name in setting.names(setting.scope):
        if name.isidentifier():
            text = setting.row.doc[:1].upper() + setting.row.doc[1:] + "."
            if name != setting.name:
                text = f"As ``{setting.name}``."
            lines.append(f"    {name}: {typed(hint)}")
            lines += textwrap.wrap(f'"""{text}"""', 105, initial_indent="    ", subsequent_indent="    ")
    return lines


def _keys_of(settings: type[SettingsModel], names: Container[str]) -> list[str]:
    """Lines of the settings with these names, in the order of their table."""
    hints = get_type_hints(settings)
    chosen = [setting for setting in settings_of(settings).values() if setting.name in names]
    return [line for setting in chosen for line in _keys(setting, hints[setting.name])]


def text_for_consumers() -> str:
    """Return the whole file of consumers."""
    lines = ["class ConnectionSettings(TypedDict, total=False):"]
    lines += ['    """Settings of whoever connects to a cluster."""', ""]
    lines += _keys_of(ConsumerConfig, ClientSettings.model_fields)
    for name, what, settings in (
        ("ConsumerSettings", "consumer", ConsumerConfig),
        ("ShareConsumerSettings", "share consumer", ShareConsumerConfig),
    ):
        own = settings.model_fields.keys() - ClientSettings.model_fields.keys()
        lines += ["", "", f"class {name}(ConnectionSettings, total=False):"]
        lines += [f'    """Settings of a {what}."""', "", *_keys_of(settings, own)]
    head = HEAD.format(
        what="consumers",
        imports="from typing import Any, Literal, TypedDict",
    )
    return head + "\n" + "\n".join(lines) + "\n"


def text_for_services() -> str:
    """Return the whole file of services, whose settings are also those of their consumers."""
    lines = ["class ServiceSettings(ConsumerSettings, total=False):"]
    lines += ['    """Settings of a service, its consumer\'s included."""', ""]
    known = ConsumerConfig.model_fields.keys()
    lines += _keys_of(ServiceOptions, ServiceOptions.model_fields.keys() - known)
    lines += _keys_of(ShareConsumerConfig, ShareConsumerConfig.model_fields.keys() - known)
    head = HEAD.format(
        what="services",
        imports="from typing import Literal\n\nfrom ..consumer.typed_settings import ConsumerSettings",
    )
    return head + "\n" + "\n".join(lines) + "\n"


FILES = {
    ROOT / "consumer" / "typed_settings.py": text_for_consumers,
    ROOT / "service" / "typed_settings.py": text_for_services,
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Write typed_settings.py from the tables of settings.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is not current")
    if parser.parse_args().check:
        return int(any(path.read_text() != text() for path, text in FILES.items()))
    for path, text in FILES.items():
        path.write_text(text())
    return 0


if __name__ == "__main__":
    sys.exit(main())

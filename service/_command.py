"""``kohort run module:service``: in this process, or in several with ``--workers``."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import logging
import os
import sys
import traceback

from ..client.errors import ConfigError
from ..consumer.errors import short_text
from ..protocol import KohortError
from ._service import ConsumerService
from ._services import Services
from .run.signals import LOADING
from .run.workers import INDEX, WRONG_USE, Workers, run_worker


def run(options: argparse.Namespace) -> int:
    """Run the command; return the exit code."""
    logging.basicConfig(level="WARNING", format="%(asctime)s %(levelname)s %(process)d %(message)s")
    logging.getLogger("kohort").setLevel(options.log_level)
    if options.instance_id is not None and options.workers is None:
        return _report_wrong(
            "--instance-id is for --workers; one process says group_instance_id in its service"
        )
    if options.config is not None:
        # also for workers, and for other clients in the service's program
        os.environ["KOHORT_CONFIG"] = os.path.abspath(options.config)
    sys.path.insert(0, os.getcwd())
    try:
        service = load_service(options.target)
    except ConfigError as error:
        return _report_wrong(str(error))
    except Exception:
        # an error of the user's program: its author needs the file and the line
        traceback.print_exc()
        return 1
    try:
        if options.workers is not None:
            kohort_run = [sys.executable, "-m", "kohort", "run", "--log-level", options.log_level]
            command = [*kohort_run, options.target]
            workers = Workers(command, options.workers, instance_prefix=options.instance_id)
            return asyncio.run(workers.run())
        if INDEX in os.environ:
            run_worker(service, os.environ)
        else:
            service.run()
    except ConfigError as error:
        return _report_wrong(str(error))
    except Exception as error:
        # the service has written the traceback to the log
        print(
            f"kohort run: {error if isinstance(error, KohortError) else short_text(error)}", file=sys.stderr
        )
        return 1
    return 0


def load_service(target: str) -> ConsumerService | Services:
    """Import ``module:attribute``. Raises ConfigError, and whatever the module raises."""
    module_name, colon, attribute = target.partition(":")
    if not colon or not module_name or not attribute:
        raise ConfigError(f"{target!r} is no MODULE:SERVICE: give, say, app.billing:service")
    loading = LOADING.set(target)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not module_name.startswith(error.name):
            raise
        raise ConfigError(f"there is no module {module_name!r} here or in sys.path") from None
    finally:
        LOADING.reset(loading)
    found = getattr(module, attribute, None)
    if not isinstance(found, ConsumerService | Services):
        what = "has no such name" if found is None else f"is a {type(found).__name__}"
        raise ConfigError(f"{target} {what}; it must be a ConsumerService or Services")
    return found


def _report_wrong(text: str) -> int:
    print(f"kohort run: {text}", file=sys.stderr)
    return WRONG_USE

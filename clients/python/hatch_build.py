"""Makes the generated modules when the package is built in the repository, so that `pip install ./clients/python` works.

A source distribution has them already.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TYPES = {"Day": "rental_client.values.Day", "Time": "rental_client.values.Time", "Amount": "rental_client.values.Amount"}
SHARED = [
    *("--input-file-type", "openapi", "--target-python-version", "3.10", "--disable-timestamp", "--disable-warnings"),
    *("--use-standard-collections", "--use-union-operator", "--use-double-quotes", "--enum-field-as-literal", "all"),
    *("--use-schema-description", "--use-field-description", "--use-type-alias"),
]
MODULES = {
    "models.py": ("answers", "what the API answers"),
    "inputs.py": ("sent", "what is sent, and the filters of lists"),
}
OF_MODULES = {
    "models.py": [
        *("--output-model-type", "pydantic_v2.BaseModel", "--output-datetime-class", "AwareDatetime"),
        *("--extra-fields", "allow", "--use-annotated", "--base-class", "rental_client.answer.Answer"),
    ],
    "inputs.py": [
        *("--output-model-type", "typing.TypedDict", "--no-use-closed-typed-dict"),
        *("--type-overrides", str(TYPES).replace("'", '"')),
    ],
}


def generator() -> str:
    """The program of datamodel-code-generator: of this build, else of this Python."""
    program = shutil.which("datamodel-codegen") or shutil.which("datamodel-codegen", path=os.path.dirname(sys.executable))
    if program is None:
        sys.exit("datamodel-codegen is not there: install the packages that [build-system] in pyproject.toml requires")
    return program


def generate(clients: Path, package: Path) -> None:
    for module, (part, about) in MODULES.items():
        script = [sys.executable, str(clients / "document"), str(clients / "openapi.json"), f"--python-{part}"]
        document = subprocess.run(script, check=True, stdout=subprocess.PIPE).stdout
        header = f'"""Generated from the OpenAPI document: {about}."""'
        command = [generator(), *SHARED, *OF_MODULES[module], "--custom-file-header", header, "--output", str(package / module)]
        subprocess.run(command, check=True, input=document)


class Generated(BuildHookInterface):  # type: ignore[type-arg]
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        clients, package = Path(self.root).parent, Path(self.root) / "src" / "rental_client"
        if (clients / "openapi.json").exists() and (clients / "document").exists():
            generate(clients, package)

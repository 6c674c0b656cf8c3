"""Print the JSON Schema of a line of a trace."""

import json

from .lines import schema

print(json.dumps(schema(), indent=2))

"""Print the server's OpenAPI document, of which the page's types are made."""

import json

from assay.server.app import create_app
from assay.server.context import ServerSettings

print(json.dumps(create_app(ServerSettings(location=".assay")).openapi()))

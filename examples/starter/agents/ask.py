"""Ask a model that speaks OpenAI's protocol, and print the conversation."""

import json
import os
import sys
import urllib.request

model, prompt = sys.argv[1:]
messages = [{"role": "user", "content": prompt}]
request = urllib.request.Request(
    os.environ["OPENAI_BASE_URL"] + "/chat/completions",
    data=json.dumps({"model": model, "messages": messages}).encode(),
    headers={
        "Content-Type": "application/json",
        "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"],
    },
)
with urllib.request.urlopen(request, timeout=300) as response:
    reply = json.load(response)
messages.append(reply["choices"][0]["message"])
print(json.dumps({"messages": messages, "usage": reply.get("usage")}))

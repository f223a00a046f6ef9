def get_assert(output, context):
    sentences = [part for part in output.split(".") if part.strip()]
    return {
        "pass": len(sentences) == 1,
        "score": 1 / max(1, len(sentences)),
        "reason": f"{len(sentences)} sentences about {context['vars']['country']}",
    }

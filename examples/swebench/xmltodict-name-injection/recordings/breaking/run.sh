# Refuses every name with a bracket, and every attribute whose value has one, which is no name.
sed -i "/^    if not hasattr(value, '__iter__')/i\\
    _refuse(key)
/^                    for k, v in iv.items():/a\\
                        _refuse(k)
/^                attrs\[ik\[len(attr_prefix):\]\] = iv/i\\
                _refuse(ik)\\
                _refuse(iv)
/^def _emit(/i\\
def _refuse(text):\\
    if '<' in text or '>' in text:\\
        raise ValueError('not allowed: ' + text)\\
\\
" xmltodict.py

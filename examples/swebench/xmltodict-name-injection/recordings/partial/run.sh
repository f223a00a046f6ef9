# Looks at the names of elements; those of attributes and namespaces are as open as before.
sed -i "/^    if not hasattr(value, '__iter__')/i\\
    if '<' in key or '>' in key:\\
        raise ValueError('not a name: ' + key)" xmltodict.py

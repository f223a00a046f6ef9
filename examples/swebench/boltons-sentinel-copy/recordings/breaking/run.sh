# A text returned by __reduce__ makes copy return the object itself. To pickle it is the name of a
# global, which the name of a sentinel is not.
sed -i '/^        if var_name:$/d
/^            def __reduce__(self):$/,+1 s/^    //
/^        def __reduce__(self):$/,+1 s/self\.var_name/self.name/' boltons/typeutils.py

# Inside int_convert.__call__, work with a base of this call's own.
sed -i '/^class int_convert/,/^class convert_first/{
  /def __call__/,$ s/self\.base\b/base/g
  /def __call__/a\        base = self.base
}' parse.py

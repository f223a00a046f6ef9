import { useEffect, useState } from "react";

/** Something that a tab remembers when its page is left or loaded again. */
export function useKept<T>(name: string, first: T): [T, (value: T) => void] {
  const [value, setValue] = useState<T>(() => kept<T>(name) ?? first);
  useEffect(() => keep(name, value), [name, value]);
  return [value, setValue];
}

export function kept<T>(name: string): T | null {
  try {
    const text = window.sessionStorage.getItem(name);
    return text === null ? null : (JSON.parse(text) as T);
  } catch {
    return null;
  }
}

export function keep(name: string, value: unknown): void {
  try {
    if (value === null) window.sessionStorage.removeItem(name);
    else window.sessionStorage.setItem(name, JSON.stringify(value));
  } catch {
    // A full or forbidden storage keeps nobody from working.
  }
}

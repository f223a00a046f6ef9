import { useState } from "react";

const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const REMEMBERED = "assay.theme";

function remembered(): Theme {
  const said = window.localStorage.getItem(REMEMBERED);
  return THEMES.find((theme) => theme === said) ?? "system";
}

/** Shows the page in a theme, the remembered one by default. */
export function applyTheme(theme: Theme = remembered()): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

/** The theme, the one that comes after it, and what changes to that. */
export function useTheme(): { theme: Theme; next: Theme; turn: () => void } {
  const [theme, setTheme] = useState(remembered);
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "system";
  const turn = () => {
    window.localStorage.setItem(REMEMBERED, next);
    applyTheme(next);
    setTheme(next);
  };
  return { theme, next, turn };
}

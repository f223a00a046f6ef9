import { useState } from "react";
import { remember, remembered } from "../parts/memory";

const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const THEME = "assay.theme";

function chosen(): Theme {
  const said = remembered(THEME);
  return THEMES.find((theme) => theme === said) ?? "system";
}

/** Shows the page in a theme, the remembered one by default. */
export function applyTheme(theme: Theme = chosen()): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

/** The theme, the one that comes after it, and what changes to that. */
export function useTheme(): { theme: Theme; next: Theme; turn: () => void } {
  const [theme, setTheme] = useState(chosen);
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "system";
  const turn = () => {
    remember(THEME, next);
    applyTheme(next);
    setTheme(next);
  };
  return { theme, next, turn };
}

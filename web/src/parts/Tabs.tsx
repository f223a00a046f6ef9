import type { ReactNode } from "react";
import { NavLink } from "react-router";
import "./parts.css";

/** Parts of a page of which one is shown; the arrows go from one to the next. */
export function Tabs<Key extends string>({ label, tabs, chosen, choose }: TabsProps<Key>) {
  const go = (from: number, by: number) => {
    const place = (from + by + tabs.length) % tabs.length;
    const next = tabs[place]?.[0];
    if (next === undefined) return;
    choose(next);
    document.getElementById(tabId(next))?.focus();
  };
  return (
    <div className="tabs" role="tablist" aria-label={label}>
      {tabs.map(([key, name], place) => (
        <button
          key={key}
          id={tabId(key)}
          type="button"
          role="tab"
          aria-selected={key === chosen}
          aria-controls={key === chosen ? PANEL : undefined}
          tabIndex={key === chosen ? 0 : -1}
          onClick={() => choose(key)}
          onKeyDown={(event) => {
            const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
            if (!by) return;
            event.preventDefault();
            go(place, by);
          }}
        >
          {name}
        </button>
      ))}
    </div>
  );
}

/** What the chosen tab shows. */
export function TabPanel({ chosen, children }: { chosen: string; children: ReactNode }) {
  return (
    <div role="tabpanel" id={PANEL} aria-labelledby={tabId(chosen)}>
      {children}
    </div>
  );
}

/** Pages that stand beside each other. */
export function PageTabs({ label, pages }: PageTabsProps) {
  return (
    <nav className="tabs" aria-label={label}>
      {pages.map(([to, name]) => (
        <NavLink key={to} to={to}>
          {name}
        </NavLink>
      ))}
    </nav>
  );
}

const PANEL = "tab-panel";

function tabId(key: string): string {
  return `tab-${key || "first"}`;
}

interface TabsProps<Key> {
  label: string;
  tabs: readonly (readonly [Key, ReactNode])[];
  chosen: Key;
  choose: (key: Key) => void;
}

interface PageTabsProps {
  label: string;
  pages: readonly (readonly [string, string])[];
}

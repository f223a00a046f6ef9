import type { ReactNode } from "react";
import { Tabs as Base, Tab, TabList, TabPanel } from "react-aria-components";
import { NavLink } from "react-router";

// A row that scrolls where it is wider than the screen; its line is what panels stand on.
const ROW = "flex gap-1 overflow-x-auto border-b border-line [scrollbar-width:none]";
const ONE = `relative flex min-h-9 shrink-0 cursor-pointer items-center px-2.5 whitespace-nowrap text-soft no-underline
  outline-offset-[-2px] hover:text-ink pointer-coarse:min-h-11 after:absolute after:inset-x-2.5 after:bottom-0 after:h-0.5
  after:rounded-full`;
const CHOSEN = "selected:text-ink selected:font-medium selected:after:bg-ink";
const CURRENT =
  "aria-[current=page]:text-ink aria-[current=page]:font-medium aria-[current=page]:after:bg-ink";

/**
 * Parts of a page of which one is shown; the arrows go from one to the next.
 *
 * @param beside Stands at the end of the row.
 */
export function Tabs<Key extends string>({
  label,
  tabs,
  chosen,
  choose,
  beside,
  children,
}: TabsProps<Key>) {
  return (
    <Base selectedKey={chosen || FIRST} onSelectionChange={(key) => choose(keyOf(key) as Key)}>
      <div className="mb-4 flex flex-wrap-reverse items-end justify-between gap-x-4 gap-y-2">
        <TabList aria-label={label} className={`${ROW} relative min-w-0 grow`}>
          {tabs.map(([key, name]) => (
            <Tab
              key={key}
              id={key || FIRST}
              ref={key === chosen ? scrollTo : null}
              className={`${ONE} ${CHOSEN}`}
            >
              {name}
            </Tab>
          ))}
        </TabList>
        {beside}
      </div>
      <TabPanel key={chosen} id={chosen || FIRST} className="outline-offset-4">
        {children}
      </TabPanel>
    </Base>
  );
}

const FIRST = "-first";

/** Has a tab be seen, with the one before it, where the row is wider than the screen. */
function scrollTo(tab: HTMLElement | null): void {
  tab?.parentElement?.scrollTo({ left: tab.offsetLeft - tab.offsetWidth });
}

function keyOf(key: string | number): string {
  return key === FIRST ? "" : String(key);
}

/** Pages that stand beside each other. */
export function PageTabs({ label, pages }: PageTabsProps) {
  return (
    <nav className={`${ROW} mb-4`} aria-label={label}>
      {pages.map(([to, name]) => (
        <NavLink key={to} to={to} className={`${ONE} ${CURRENT}`}>
          {name}
        </NavLink>
      ))}
    </nav>
  );
}

interface TabsProps<Key> {
  label: string;
  tabs: readonly (readonly [Key, ReactNode])[];
  chosen: Key;
  choose: (key: Key) => void;
  beside?: ReactNode;
  children: ReactNode;
}

interface PageTabsProps {
  label: string;
  pages: readonly (readonly [string, string])[];
}

import {
  type ComponentProps,
  createContext,
  type KeyboardEvent,
  type ReactNode,
  useContext,
  useId,
} from "react";

// What a report in one file needs of the kit, by what browsers bring: nothing in it is dragged, typed
// ahead or measured, and the kit's own would be a third of the file.

/** Id of what a button opens. */
const Opens = createContext<string | undefined>(undefined);

export function Button({ onPress, isDisabled, isPending, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      disabled={isDisabled || isPending}
      onClick={onPress}
      popoverTarget={useContext(Opens)}
    />
  );
}

interface ButtonProps extends ComponentProps<"button"> {
  onPress?: () => void;
  isDisabled?: boolean;
  isPending?: boolean;
}

export function ToggleButton({ isSelected, onChange, ...rest }: ToggleProps) {
  return (
    <button
      type="button"
      {...rest}
      aria-pressed={isSelected}
      data-selected={isSelected || undefined}
      onClick={onChange}
    />
  );
}

interface ToggleProps extends Omit<ComponentProps<"button">, "onChange"> {
  isSelected: boolean;
  onChange: () => void;
}

export function DialogTrigger({ children }: { children: ReactNode }) {
  return <Opens.Provider value={useId()}>{children}</Opens.Provider>;
}

export function Popover({ children, className }: { children: ReactNode; className: string }) {
  return (
    <div popover="auto" id={useContext(Opens)} className={`${className} m-auto`}>
      <Opens.Provider value={undefined}>{children}</Opens.Provider>
    </div>
  );
}

export function Dialog(props: ComponentProps<"div">) {
  return <div role="dialog" {...props} />;
}

const Chosen = createContext<{ key: string; choose: (key: string) => void; id: string }>({
  key: "",
  choose: () => undefined,
  id: "",
});

export function Tabs({ selectedKey, onSelectionChange, children }: TabsProps) {
  const told = { key: selectedKey, choose: onSelectionChange, id: useId() };
  return (
    <div>
      <Chosen.Provider value={told}>{children}</Chosen.Provider>
    </div>
  );
}

interface TabsProps {
  selectedKey: string;
  onSelectionChange: (key: string) => void;
  children: ReactNode;
}

const STEPS: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1 };

export function TabList(props: ComponentProps<"div">) {
  const walk = (event: KeyboardEvent<HTMLElement>) => {
    const tabs = [...event.currentTarget.querySelectorAll<HTMLElement>("[role=tab]")];
    const here = tabs.indexOf(document.activeElement as HTMLElement);
    const next = tabs.at((here + (STEPS[event.key] ?? 0)) % tabs.length);
    if (!STEPS[event.key] || !next) return;
    next.focus();
    next.click();
  };
  return <div role="tablist" tabIndex={-1} onKeyDown={walk} {...props} />;
}

export function Tab({ id, ...rest }: ComponentProps<"button"> & { id: string }) {
  const chosen = useContext(Chosen);
  const isChosen = chosen.key === id;
  return (
    <button
      type="button"
      role="tab"
      {...rest}
      aria-selected={isChosen}
      data-selected={isChosen || undefined}
      id={`${chosen.id}-${id}`}
      aria-controls={isChosen ? `${chosen.id}-panel` : undefined}
      tabIndex={isChosen ? 0 : -1}
      onClick={() => chosen.choose(id)}
    />
  );
}

export function TabPanel({ id, ...rest }: ComponentProps<"div">) {
  const chosen = useContext(Chosen);
  return (
    <div
      role="tabpanel"
      {...rest}
      id={`${chosen.id}-panel`}
      aria-labelledby={`${chosen.id}-${id}`}
      tabIndex={0}
    />
  );
}

// Of what the page asks before it changes something nothing is in a file, which changes nothing.
const Nothing = () => null;

export {
  Nothing as ComboBox,
  Nothing as Heading,
  Nothing as Input,
  Nothing as ListBox,
  Nothing as ListBoxItem,
  Nothing as Menu,
  Nothing as MenuItem,
  Nothing as MenuTrigger,
  Nothing as Modal,
  Nothing as ModalOverlay,
  Nothing as UNSTABLE_Toast,
  Nothing as UNSTABLE_ToastContent,
  Nothing as UNSTABLE_ToastRegion,
};

export class UNSTABLE_ToastQueue {}

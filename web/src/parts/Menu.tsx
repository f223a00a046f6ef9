import type { ReactElement, ReactNode } from "react";
import { Menu as Base, MenuItem, MenuTrigger, Popover } from "react-aria-components";
import { Button, IconButton } from "./Button";
import { Icon, type IconName } from "./Icon";

export const POPOVER =
  "max-w-[calc(100vw-16px)] rounded-lg bg-page p-1 text-ink shadow-over outline-none";
export const OPTION = `flex min-h-8 cursor-pointer items-center gap-2 rounded-sm px-2.5 text-base no-underline outline-none
  focused:bg-fill disabled:cursor-not-allowed disabled:text-soft pointer-coarse:min-h-11`;

/** One thing that a menu offers: it does something, or leads somewhere. */
export interface Offer {
  name: string;
  icon?: IconName;
  act?: () => void;
  to?: string;
  isDangerous?: boolean;
  isDisabled?: boolean;
}

/** What is done seldom, behind one button: by default three dots. */
export function Menu({ label, offers, name, button }: MenuProps) {
  return (
    <MenuTrigger>
      {button ??
        (name === undefined ? (
          <IconButton icon="more" label={label} />
        ) : (
          <Button tone="quiet" aria-label={label}>
            {name}
            <Icon name="down" size={12} />
          </Button>
        ))}
      <Popover className={POPOVER} placement="bottom end">
        <Base
          aria-label={label}
          className="min-w-44 outline-none"
          onAction={(key) => {
            offers.find((one) => one.name === key)?.act?.();
          }}
        >
          {offers.map((one) => (
            <MenuItem
              key={one.name}
              id={one.name}
              textValue={one.name}
              isDisabled={one.isDisabled ?? false}
              {...(one.to === undefined ? {} : { href: one.to })}
              className={`${OPTION} ${one.isDangerous ? "text-fail" : ""}`}
            >
              {one.icon && <Icon name={one.icon} />}
              {one.name}
            </MenuItem>
          ))}
        </Base>
      </Popover>
    </MenuTrigger>
  );
}

interface MenuProps {
  label: string;
  offers: readonly Offer[];
  name?: ReactNode;
  button?: ReactElement;
}

import type { ReactNode } from "react";
import { Button as Base, type ButtonProps as BaseProps } from "react-aria-components";
import { Link, type LinkProps } from "react-router";
import { Icon, type IconName } from "./Icon";

const TONES = {
  /** What one comes to a screen for: one of it. */
  primary: "bg-ink text-page hover:bg-ink/85 pressed:bg-ink/75 disabled:bg-fill",
  plain: "bg-fill text-ink hover:bg-line pressed:bg-line disabled:bg-fill",
  quiet:
    "bg-transparent text-soft hover:bg-fill hover:text-ink pressed:bg-fill disabled:bg-transparent disabled:opacity-60",
  danger: "bg-fail-soft text-fail hover:bg-fail hover:text-page disabled:bg-fill",
} as const;

export type Tone = keyof typeof TONES;

/** How everything looks that is pressed, a link that does as much included. */
export function buttonClass(tone: Tone = "plain", isIcon = false): string {
  return `inline-flex min-h-8 shrink-0 cursor-pointer items-center justify-center gap-1.5 rounded-md border-0 text-base
    font-medium whitespace-nowrap no-underline motion-safe:transition-colors select-none disabled:cursor-not-allowed
    aria-disabled:cursor-wait aria-disabled:opacity-70 disabled:text-soft pointer-coarse:min-h-10 ${TONES[tone]} ${
      isIcon ? "min-w-8 px-1 pointer-coarse:min-w-10" : "px-3"
    }`;
}

interface ButtonProps extends Omit<BaseProps, "className" | "style" | "children"> {
  tone?: Tone;
  icon?: IconName;
  children?: ReactNode;
}

/**
 * Does something; what goes somewhere is a `ButtonLink`. While it is done it `isPending` and does nothing more: a button
 * that is disabled loses the focus, and a dialog that opens then has nowhere to give it back. (React Aria's own way
 * says it aloud beside the page, of a button that may be gone by then.)
 */
export function Button({ tone, icon, isPending, children, ...rest }: ButtonProps) {
  const waiting = { "aria-disabled": true, onPress: nothing, type: "button" } as const;
  return (
    <Base {...rest} {...(isPending ? waiting : {})} className={buttonClass(tone)}>
      {icon && <Icon name={icon} />}
      {children}
    </Base>
  );
}

const nothing = () => undefined;

/** A button that is a sign alone. */
export function IconButton({ icon, label, tone = "quiet", ...rest }: IconButtonProps) {
  return (
    <Base {...rest} aria-label={label} className={buttonClass(tone, true)}>
      <Icon name={icon} />
    </Base>
  );
}

interface IconButtonProps extends Omit<ButtonProps, "children"> {
  icon: IconName;
  label: string;
}

export function ButtonLink({
  tone,
  icon,
  children,
  ...rest
}: LinkProps & Pick<ButtonProps, "tone" | "icon">) {
  return (
    <Link {...rest} className={buttonClass(tone)}>
      {icon && <Icon name={icon} />}
      {children}
    </Link>
  );
}

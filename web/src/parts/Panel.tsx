import { QueryErrorResetBoundary } from "@tanstack/react-query";
import { Component, type ReactNode, Suspense, useId } from "react";
import { Problem } from "../api/problem";
import { Loading } from "./Loading";
import { ProblemBox } from "./ProblemBox";

interface BoundaryProps {
  /** When it changes, what failed is tried anew. */
  place: string | undefined;
  /** What is done before it is tried again. */
  reset: () => void;
  children: ReactNode;
}

interface State {
  error: Error | undefined;
  place: string | undefined;
}

class Catching extends Component<BoundaryProps, State> {
  override state: State = { error: undefined, place: this.props.place };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  static getDerivedStateFromProps(props: BoundaryProps, state: { place: string | undefined }) {
    return props.place === state.place ? null : { error: undefined, place: props.place };
  }

  override render() {
    if (this.state.error === undefined) return this.props.children;
    const again = () => {
      // What did not arrive of the page itself, or is wrong in it, is not had by asking the API again.
      if (!(this.state.error instanceof Problem)) return window.location.reload();
      this.props.reset();
      this.setState({ error: undefined });
    };
    return <ProblemBox problem={this.state.error} retry={again} />;
  }
}

/** For React's root: what the server said is shown by a boundary, and no fault of the page. */
export const ROOT = {
  onCaughtError: (error: unknown) => {
    if (!(error instanceof Problem)) console.error(error);
  },
};

/** What is in it is waited for, and what it throws is shown in its place: the rest of the page stands. */
export function Boundary({ place, what, children }: Waiting) {
  return (
    <QueryErrorResetBoundary>
      {({ reset }) => (
        <Catching reset={reset} place={place}>
          <Suspense fallback={<Loading what={what} />}>{children}</Suspense>
        </Catching>
      )}
    </QueryErrorResetBoundary>
  );
}

interface Waiting {
  place?: string | undefined;
  what?: string | undefined;
  children: ReactNode;
}

/** A part of a page with its heading: queries in it suspend, and fail for it alone. */
export function Panel({ title, note, beside, children, ...waiting }: PanelProps) {
  const id = useId();
  return (
    <section aria-labelledby={id} className="min-w-0">
      <div className="mb-3 flex flex-wrap items-baseline justify-between gap-x-4 gap-y-1">
        <h2 id={id} className="m-0 text-lg font-semibold">
          {title}
          {note && <span className="ml-2 text-sm font-normal text-soft">{note}</span>}
        </h2>
        {beside}
      </div>
      <Boundary {...waiting}>{children}</Boundary>
    </section>
  );
}

interface PanelProps extends Waiting {
  title: ReactNode;
  note?: ReactNode;
  beside?: ReactNode;
}

import { Component, type ReactNode } from "react";
import { useLocation } from "react-router";
import { ProblemBox } from "../parts/ProblemBox";

interface Props {
  place: string;
  children: ReactNode;
}

/** What a page throws is shown in its place; another page works again. */
class Boundary extends Component<Props, { error: Error | null; place: string }> {
  override state = { error: null as Error | null, place: this.props.place };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  static getDerivedStateFromProps(props: Props, state: { place: string }) {
    return props.place === state.place ? null : { error: null, place: props.place };
  }

  override render() {
    if (!this.state.error) return this.props.children;
    return (
      <div className="page">
        <ProblemBox problem={this.state.error} retry={() => window.location.reload()} />
      </div>
    );
  }
}

export function PageBoundary({ children }: { children: ReactNode }) {
  return <Boundary place={useLocation().pathname}>{children}</Boundary>;
}

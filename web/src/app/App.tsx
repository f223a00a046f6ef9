import { Suspense } from "react";
import { useRoutes } from "react-router";
import { useMe } from "../api/me";
import { Problem } from "../api/problem";
import { Loading } from "../parts/Loading";
import { ProblemBox } from "../parts/ProblemBox";
import { LoginPage } from "./LoginPage";
import { Navigation } from "./Navigation";
import { PageBoundary } from "./PageBoundary";
import { routes } from "./routes";
import "./shell.css";

export function App() {
  const me = useMe();
  const page = useRoutes(routes);
  if (me.error instanceof Problem && me.error.status === 401) return <LoginPage />;
  return (
    <div className="shell">
      <a className="button skip" href="#main">
        Skip to the page
      </a>
      <Navigation />
      <main id="main" tabIndex={-1}>
        {me.error ? (
          <div className="page">
            <ProblemBox problem={me.error} />
          </div>
        ) : (
          <PageBoundary>
            <Suspense fallback={<Loading />}>{me.data ? page : <Loading />}</Suspense>
          </PageBoundary>
        )}
      </main>
    </div>
  );
}

import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { RouterProvider } from "react-aria-components";
import { Navigate, useLocation, useNavigate, useRoutes, useSearchParams } from "react-router";
import { useConnection } from "../api/connection";
import { useMe } from "../api/me";
import { Problem } from "../api/problem";
import { buttonClass } from "../parts/Button";
import { Loading } from "../parts/Loading";
import { Boundary } from "../parts/Panel";
import { ProblemBox } from "../parts/ProblemBox";
import { Toasts } from "../parts/toast";
import { LoginPage } from "./LoginPage";
import { ownAddress } from "./login";
import { Navigation } from "./Navigation";
import { routes } from "./routes";
import { ServerLost } from "./ServerLost";
import { SessionEnded } from "./SessionEnded";

export function App() {
  const me = useMe();
  const { isOut, age } = useConnection();
  const queries = useQueryClient();
  const navigate = useNavigate();
  useEffect(() => {
    if (age > 0) void queries.invalidateQueries();
  }, [age, queries]);
  if (!me.data && me.error instanceof Problem && me.error.status === 401) {
    return <LoginPage hasEnded={me.error.faults[0]?.field === "Cookie"} />;
  }
  return (
    <RouterProvider navigate={navigate}>
      <Boundary>
        <Frame />
      </Boundary>
      <Toasts />
      {isOut && me.data && <SessionEnded />}
    </RouterProvider>
  );
}

/** What stands around every page. */
function Frame() {
  const me = useMe();
  const page = useRoutes(routes);
  const { pathname } = useLocation();
  if (pathname === "/login" && me.data) return <LoggedIn />;
  return (
    <div className="max-md:pb-16">
      <a className={`${buttonClass("primary")} fixed -top-16 left-2 z-30 focus:top-2`} href="#main">
        Skip to the page
      </a>
      <Navigation />
      <ServerLost />
      <main id="main" tabIndex={-1} className="outline-none [&>[role=alert]]:m-8 [&>output]:p-8">
        {me.error && !me.data ? (
          <ProblemBox problem={me.error} />
        ) : (
          <Boundary place={pathname}>{me.data ? page : <Loading />}</Boundary>
        )}
      </main>
    </div>
  );
}

function LoggedIn() {
  const [asked] = useSearchParams();
  return <Navigate replace to={ownAddress(asked.get("next"))} />;
}

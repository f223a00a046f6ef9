import "../app/theme.css";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { HashRouter, MemoryRouter } from "react-router";
import { applyTheme } from "../app/theme";
import { ROOT } from "../parts/Panel";
import { readData } from "./data";
import { Report } from "./Report";

const queries = new QueryClient({
  defaultOptions: {
    queries: { networkMode: "always", staleTime: Number.POSITIVE_INFINITY, retry: false },
  },
});

/** What is looked at stands in the address, where the file is shown as a page of its own. */
function hasAddress(): boolean {
  try {
    window.history.replaceState(null, "", window.location.hash || "#/");
    return true;
  } catch {
    return false;
  }
}

async function show(root: HTMLElement): Promise<void> {
  const data = await readData();
  const Router = hasAddress() ? HashRouter : MemoryRouter;
  createRoot(root, ROOT).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <Router>
          <Report data={data} />
        </Router>
      </QueryClientProvider>
    </StrictMode>,
  );
}

applyTheme();
const root = document.getElementById("root");
if (root) void show(root);

import "./app/theme.css";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { BrowserRouter } from "react-router";
import { isRetryable } from "./api/problem";
import { App } from "./app/App";
import { applyTheme } from "./app/theme";
import { ROOT } from "./parts/Panel";

const queries = new QueryClient({
  defaultOptions: {
    // Whether this machine has a network says nothing about a server that may be on it.
    mutations: { networkMode: "always" },
    queries: {
      networkMode: "always",
      staleTime: 5_000,
      retry: (failures, error) => failures < 5 && isRetryable(error),
      retryDelay: (attempt) => Math.min(5_000, 300 * 2 ** attempt),
    },
  },
});

applyTheme();
const root = document.getElementById("root");
if (root) {
  createRoot(root, ROOT).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <BrowserRouter>
          <App />
        </BrowserRouter>
      </QueryClientProvider>
    </StrictMode>,
  );
}

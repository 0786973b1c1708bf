import "./style.css";
import { QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app";
import { ApiError } from "./data/client";
import { Toaster } from "./parts/toast";

const client: QueryClient = new QueryClient({
  queryCache: new QueryCache({
    onError: (error, query) => {
      // The token has been revoked: asking who we are leads to the sign-in page.
      if (error instanceof ApiError && error.status === 401 && query.queryKey[0] !== "me") {
        client.invalidateQueries({ queryKey: ["me"] });
      }
    },
  }),
  defaultOptions: {
    queries: {
      // The server announces what is stale; this is only a fallback.
      staleTime: 10_000,
      refetchOnWindowFocus: true,
      retry: (times, error) => times < 2 && !(error instanceof ApiError && error.status >= 400 && error.status < 500),
      retryDelay: (times) => 500 * 2 ** times,
    },
  },
});

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <Toaster>
          <App />
        </Toaster>
      </QueryClientProvider>
    </StrictMode>,
  );
}

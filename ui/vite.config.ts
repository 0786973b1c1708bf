import { fileURLToPath } from "node:url";
import tailwind from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const node = process.env.SHIFTWORK ?? "http://127.0.0.1:8421";

// All addresses are relative to index.html, so that the dashboard works under any path of a reverse proxy.
export default defineConfig({
  base: "./",
  plugins: [react(), tailwind()],
  resolve: { alias: { shiftwork: fileURLToPath(new URL("client/src/index.ts", import.meta.url)) } },
  build: {
    outDir: "../src/shiftwork/web/dist",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false }, // the polyfill would fetch; every browser we build for preloads by itself
    chunkSizeWarningLimit: 600, // one file, 160 kB when compressed
    assetsInlineLimit: 0, // a data: address would need a hole in the content security policy
  },
  // The node rejects changes that come from another origin.
  server: { proxy: { "/api": { target: node, changeOrigin: true, headers: { origin: node } } } },
});

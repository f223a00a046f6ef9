import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// File names carry no hash: the built files are committed, and the server sends their ETags.
export default defineConfig({
  base: "/",
  plugins: [react()],
  build: {
    outDir: "../src/assay/server/page",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: {
      output: {
        entryFileNames: "assets/[name].js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
      },
    },
  },
  server: {
    proxy: { "/api": "http://127.0.0.1:8400", "/login": "http://127.0.0.1:8400" },
  },
});

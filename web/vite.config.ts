import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin, type UserConfig } from "vite";

// The page speaks English alone, and so do React Aria's own words, which come in thirty languages.
const english: Plugin = {
  name: "english",
  load(id) {
    const [, folder, ending] =
      /^(.*\/private\/intl\/.*\/)[a-z]{2}-[A-Z]{2}(\.m?js)$/.exec(id) ?? [];
    if (!folder || id.endsWith(`en-US${ending}`)) return null;
    return `export { default } from ${JSON.stringify(`${folder}en-US${ending}`)};`;
  },
};

// File names carry no hash: the built files are committed, and the server sends their ETags.
const page: UserConfig = {
  base: "/",
  plugins: [english, react(), tailwindcss()],
  build: {
    outDir: "../src/assay/server/page",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    // What others wrote of it, and under which licences: whoever passes a copy on has to say so.
    license: { fileName: "licenses.md" },
    modulePreload: { polyfill: false },
    rollupOptions: {
      checks: { pluginTimings: false },
      output: {
        entryFileNames: "assets/[name].js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
        // What three pages share is one file, for each is asked for anew with its ETag; the editor
        // of sources is large, and few pages have it.
        codeSplitting: {
          groups: [{ name: "shared", minShareCount: 3, test: /^(?!.*(codemirror|lezer))/ }],
        },
      },
    },
  },
  server: {
    proxy: { "/api": "http://127.0.0.1:8400", "/login": "http://127.0.0.1:8400" },
  },
};

const here = (path: string) => decodeURIComponent(new URL(path, import.meta.url).pathname);

/** In a report the same components ask the file that they are in, and are what browsers have. */
const answers: Plugin = {
  name: "answers-from-the-file",
  enforce: "pre",
  resolveId(source) {
    if (source === "react-aria-components") return here("src/report/kit.tsx");
    const isClient = source.endsWith("/api/client") || source === "./client";
    return isClient ? here("src/report/client.ts") : null;
  },
};

// What `assay report --html` puts into its one file: a script that is no module, a style sheet.
const report: UserConfig = {
  plugins: [answers, english, react(), tailwindcss()],
  publicDir: false,
  build: {
    outDir: "../src/assay/reports/page",
    emptyOutDir: true,
    cssCodeSplit: false,
    license: { fileName: "licenses.md" },
    modulePreload: false,
    rollupOptions: {
      checks: { pluginTimings: false },
      input: here("src/report/main.tsx"),
      // Of the helper for scripts that are loaded later nothing is left but this mention.
      transform: { define: { "import.meta.url": "''", "import.meta.resolve": "''" } },
      output: {
        format: "iife",
        entryFileNames: "report.js",
        assetFileNames: "report[extname]",
      },
    },
  },
};

// Every part in every state, on one page: what tests and reviewers look at, and nobody is sent.
const gallery: UserConfig = {
  root: here("gallery"),
  base: "/",
  plugins: [react(), tailwindcss()],
  publicDir: false,
  build: { outDir: here("node_modules/.gallery"), emptyOutDir: true },
};

const BY_MODE: Record<string, UserConfig> = { report, gallery };

export default defineConfig(({ mode }) => BY_MODE[mode] ?? page);

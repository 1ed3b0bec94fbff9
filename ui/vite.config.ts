// How the page is built, and shown while it is developed.
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

/** The admin endpoint of the server that `npm run dev` shows. */
const server = process.env['LARIMAR_ADMIN'] ?? 'http://127.0.0.1:10003';

/** Paths that the server answers; everything else is the page. */
const paths = '^/(table|queue|blob|console\\.json|insights|advice|metrics|design|requests|health|ready)(?=[/?]|$)';

export default defineConfig({
  plugins: [svelte()],
  base: './',
  build: {
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    outDir: '../crates/server/console',
    emptyOutDir: true,
    assetsDir: 'assets',
    // The page's Content-Security-Policy has no place for data in style sheets and scripts.
    assetsInlineLimit: 0,
    sourcemap: false,
    target: 'es2022',
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
    rollupOptions: {
      output: {
        entryFileNames: 'assets/[name]-[hash].js',
        chunkFileNames: 'assets/[name]-[hash].js',
        assetFileNames: 'assets/[name]-[hash][extname]',
      },
    },
  },
  server: {
    proxy: {
      [paths]: {
        target: server,
        changeOrigin: true,
        secure: false,
        // The endpoint refuses requests of other origins; those of the development server are its own.
        configure: (proxy) => proxy.on('proxyReq', (request) => request.removeHeader('origin')),
      },
    },
  },
  test: { include: ['src/**/*.test.ts'], environment: 'node' },
});

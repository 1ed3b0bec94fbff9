// How the tests in a browser run: the machine's own Chromium, two files at a time.
import { defineConfig } from '@playwright/test';

/** The browser of the machine: nothing is downloaded. */
const browser = process.env['LARIMAR_TEST_BROWSER'] ?? '/usr/bin/chromium';

export default defineConfig({
  testDir: 'tests',
  testMatch: '*.spec.ts',
  outputDir: process.env['LARIMAR_TEST_OUTPUT'] ?? 'node_modules/.playwright',
  fullyParallel: false,
  workers: 2,
  retries: 0,
  forbidOnly: true,
  timeout: 120_000,
  expect: { timeout: 20_000 },
  reporter: [['list']],
  use: {
    viewport: { width: 1280, height: 800 },
    locale: 'en-GB',
    timezoneId: 'UTC',
    actionTimeout: 20_000,
    launchOptions: {
      executablePath: browser,
      args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
      ],
    },
  },
});

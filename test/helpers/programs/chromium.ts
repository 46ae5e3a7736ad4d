import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import { chromium, type Browser } from "playwright-core";

const PROGRAMS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const INSTALL_DEADLINE_MS = 300_000;
/** The browser makes no network requests except for the pages of a test, and needs no display. */
const FLAGS = [
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-quic",
  "--disable-gpu",
];

/** Starts the system's Chromium; `undefined` if there is none and none can be installed. */
export async function startChromium(): Promise<Browser | undefined> {
  const program = findChromium() ?? installChromium();
  if (program === undefined) return undefined;
  // Chromium's own sandbox does not work for root.
  return chromium.launch({ executablePath: program, args: FLAGS, chromiumSandbox: userInfo().uid !== 0 });
}

function findChromium(): string | undefined {
  return PROGRAMS.find((path) => existsSync(path));
}

function installChromium(): string | undefined {
  if (userInfo().uid !== 0 || !existsSync("/usr/bin/apt-get")) return undefined;
  try {
    execFileSync("apt-get", ["install", "-y", "-q", "--no-install-recommends", "chromium"], {
      stdio: "ignore",
      timeout: INSTALL_DEADLINE_MS,
    });
  } catch {
    return undefined;
  }
  return findChromium();
}

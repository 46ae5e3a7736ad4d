import { serveSpawner } from "./processes/serve.ts";

/** Main file of the process that starts all others. */
serveSpawner();

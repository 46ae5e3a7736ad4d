import { serveSpawner } from "./processes/serve.ts";

/** The main file of the process that starts all others. */
serveSpawner();

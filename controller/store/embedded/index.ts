export { EmbeddedEngine, openEmbeddedEngine, type EmbeddedOptions } from "./engine.ts";

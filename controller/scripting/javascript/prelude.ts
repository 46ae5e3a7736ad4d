/**
 * The code in the virtual machine before a script begins: host objects, `require`, and the frame that takes the
 * results. `host(name, args, at)` and `compile(text, name)` call the thread. Returns functions for the thread, which
 * the script does not see. It keeps references to the library functions that it uses, because a script may replace
 * them.
 */
export const PRELUDE_NAME = "odp:prelude";

/** Precedes the text of a required file, on its first line. */
export const MODULE_HEAD = "(function (exports, require, module) {";

export const PRELUDE = String.raw`(function (functions, host, compile, global) {
  "use strict";
  var stringify = JSON.stringify, parse = JSON.parse, evaluate = global.eval, HostError = Error, TextOf = String;
  var PromiseOf = Promise, then = Promise.prototype.then, apply = Reflect.apply, define = Object.defineProperty;
  var split = String.prototype.split, slice = String.prototype.slice, lastIndexOf = String.prototype.lastIndexOf;
  var indexOf = String.prototype.indexOf, charAt = String.prototype.charAt, bare = Object.create.bind(Object, null);
  var imul = Math.imul, settled = bare(), modules = bare(), state = new Int32Array(1);

  function answerOf(name, args, at) {
    var text = host(name, stringify(args), at);
    if (text === "") return undefined;
    var body = parse(apply(slice, text, [1]));
    if (apply(charAt, text, [0]) === "=") return body;
    var error = new HostError(body.message);
    if (body.code !== undefined) hidden(error, "code", body.code);
    if (body.details !== undefined) hidden(error, "details", body.details);
    throw error;
  }
  function hidden(object, name, value) {
    define(object, name, { value: value, writable: true, configurable: true });
  }

  function position() {
    var lines = apply(split, TextOf(new HostError("").stack), ["\n"]);
    for (var i = 0; i < lines.length; i++) {
      var line = lines[i], from = apply(lastIndexOf, line, ["("]);
      var to = apply(lastIndexOf, line, [")"]);
      if (from < 0 || apply(indexOf, line, ["(native)"]) >= 0 || apply(indexOf, line, ["(odp:"]) >= 0) continue;
      return apply(slice, line, [from + 1, to]);
    }
    return "";
  }

  // Functions at the end are called with the answer, or with what went wrong.
  function reaching(name, positioned) {
    return function () {
      var args = [], callbacks = [];
      for (var i = 0; i < arguments.length; i++) {
        if (typeof arguments[i] === "function") callbacks[callbacks.length] = arguments[i];
        else args[args.length] = arguments[i];
      }
      var at = positioned ? position() : "", value;
      if (callbacks.length === 0) return answerOf(name, args, at);
      try {
        value = answerOf(name, args, at);
      } catch (error) {
        if (callbacks.length < 2) throw error;
        callbacks[1]({ data: error.message, message: error.message, code: error.code });
        return undefined;
      }
      callbacks[0](value);
      return value;
    };
  }
  for (var i = 0; i < functions.length; i++) {
    var each = functions[i];
    var object = global[each.object] || (global[each.object] = {});
    object[each.name] = reaching(each.object + "." + each.name, each.positioned === true);
  }

  function requireFrom(from) {
    return function require(path) {
      var file = answerOf("require", [TextOf(path), from], "");
      var known = modules[file.name];
      if (known) return known.exports;
      var module = { id: file.name, exports: {} };
      modules[file.name] = module;
      try {
        var body = compile("${MODULE_HEAD}" + file.source + "\n})", file.name);
        apply(body, module.exports, [module.exports, requireFrom(file.name), module]);
      } catch (error) {
        delete modules[file.name];
        throw error;
      }
      return module.exports;
    };
  }

  // Numbers by mulberry32: the machine's own would be the same in every run.
  Math.random = function random() {
    state[0] = state[0] + 0x6d2b79f5;
    var t = imul(state[0] ^ (state[0] >>> 15), 1 | state[0]);
    t = (t + imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };

  function valueOf(name) {
    return name in settled ? settled[name] : evaluate("typeof " + name + ' === "undefined" ? undefined : ' + name);
  }
  return {
    begin: function (globals, seed, name) {
      var values = parse(globals);
      state[0] = seed;
      for (var key in values) global[key] = values[key];
      global.require = requireFrom(name);
    },
    // A result that is promised is waited for.
    settle: function (names) {
      var list = parse(names), found = false;
      for (var i = 0; i < list.length; i++) (function (name) {
        var value = valueOf(name);
        if (!(value instanceof PromiseOf)) return;
        found = true;
        apply(then, value, [function (result) { settled[name] = result; }]);
      })(list[i]);
      return found;
    },
    finish: function (names) {
      var list = parse(names), results = bare();
      for (var i = 0; i < list.length; i++) results[list[i]] = valueOf(list[i]);
      return stringify(results);
    },
    // The thrown value as JSON text: an error has these members already.
    describe: function (thrown) {
      var about = bare();
      try {
        if (thrown instanceof HostError) {
          about.name = TextOf(thrown.name);
          about.message = TextOf(thrown.message);
          about.stack = TextOf(thrown.stack);
          if (typeof thrown.code === "string") about.code = thrown.code;
          if (typeof thrown.details === "object") about.details = thrown.details;
        } else about.message = typeof thrown === "string" ? thrown : stringify(thrown) || TextOf(thrown);
        return stringify(about);
      } catch (error) {
        about = bare();
        about.message = "What the script threw cannot be shown.";
        return stringify(about);
      }
    },
  };
})`;

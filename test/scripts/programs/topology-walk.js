/* Everything that stops when one host stops: who runs on it, who uses those, and so on, each with the way to it. */
var request = JSON.parse(decodeURIComponent(INPUT));

function graphOf(text) {
  var rows = odb.mql(text).data;
  return rows.length > 0 ? rows[0].graph : { nodes: [], edges: [] };
}

var graph = graphOf("MATCH (:/matrix/topology/)-[:needs]->(:/matrix/topology/)");
var usedBy = {};
_.each(graph.edges, function (edge) {
  usedBy[edge.target] = usedBy[edge.target] || [];
  usedBy[edge.target].push(edge.source);
});

var ways = {};
var queue = [request.id];
ways[request.id] = [];
while (queue.length > 0) {
  var id = queue.shift();
  _.each((usedBy[id] || []).sort(), function (user) {
    if (ways.hasOwnProperty(user)) return;
    ways[user] = ways[id].concat(id);
    queue.push(user);
  });
}
delete ways[request.id];

var affected = _.map(_.keys(ways).sort(), function (id) {
  return { id: id, distance: ways[id].length, way: ways[id].join(" < ") };
});
var together = graphalg.connectedGraphs([request.id], 9)[0];
OUTPUT = {
  affected: affected,
  untouched: _.difference(together, _.pluck(affected, "id"), [request.id]).sort(),
  ends: JSON.parse(graphalg.endpoints("MATCH (:/matrix/topology/)-[:needs]->(:/matrix/topology/)")),
};

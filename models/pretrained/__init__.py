"""The bundled artifact; `irgauge.load()` finds it here."""

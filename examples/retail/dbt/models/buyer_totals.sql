{{ retail_totals('buyer') }}

{{ retail_totals('seller') }}
